package gate

import "github.com/dibs-dev/dibs"

// What a campaign may not have: *dibs.Error of NotFound.
var (
	NoTickets = dibs.Fail(dibs.NotFound, dibs.Text{EN: "this campaign has no tickets", ZH: "该活动没有入场凭证"})
	NoRoom    = dibs.Fail(dibs.NotFound, dibs.Text{EN: "this campaign has no waiting room", ZH: "该活动没有等候室"})
	NoLottery = dibs.Fail(dibs.NotFound, dibs.Text{EN: "this campaign has no lottery", ZH: "该活动没有抽签"})
)

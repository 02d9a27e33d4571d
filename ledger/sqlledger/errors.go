package sqlledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/sqldb"

	"github.com/dibs-dev/dibs/events"
)

// passed are errors that reach the caller as they are: those of the contract,
// and the caller's own context.
var passed = []error{
	dibs.ErrConflict, dibs.ErrPositionMoved, events.ErrSinkTaken, dibs.ErrGap, dibs.ErrOwned,
	dibs.ErrFenced, dibs.ErrCorrupt, dibs.ErrForked, sqldb.ErrSchema, context.Canceled, context.DeadlineExceeded,
}

// explain turns an error into one of the contract. op says what was being done.
func explain(op string, fault sqldb.Fault, err error) error {
	var refusal *dibs.Error
	if errors.As(err, &refusal) {
		return err
	}
	wrapped := fmt.Errorf("sqlledger: %s: %w", op, err)
	switch fault {
	case sqldb.FaultUnknownEffect:
		return dibs.Unavail(dibs.EffectUnknown, wrapped)
	case sqldb.FaultSlow:
		return dibs.Unavail(dibs.EffectNone, wrapped)
	}
	for _, p := range passed {
		if errors.Is(err, p) {
			return wrapped
		}
	}
	switch fault {
	case sqldb.FaultBusy, sqldb.FaultConflict, sqldb.FaultFull, sqldb.FaultIO:
		return dibs.Unavail(dibs.EffectNone, wrapped)
	case sqldb.FaultText:
		return dibs.Invalid(dibs.Fault{Problem: dibs.Text{
			EN: "has characters that the database cannot keep, such as NUL", ZH: "含有数据库无法保存的字符，例如 NUL",
		}})
	case sqldb.FaultCorrupt:
		return fmt.Errorf("sqlledger: %s: %w: %w", op, dibs.ErrCorrupt, err)
	case sqldb.FaultUnique, sqldb.FaultConstraint:
		return fmt.Errorf("sqlledger: %s: a constraint of the database refused it: %w", op, err)
	}
	return wrapped
}

// refusedBefore is explain for an error that was found without asking the
// database.
func refusedBefore(op string, err error) error { return explain(op, sqldb.FaultOther, err) }

// The things that the ledger keeps, for texts in both languages.
var (
	aProduct       = dibs.Text{EN: "product", ZH: "商品"}
	aCampaign      = dibs.Text{EN: "campaign", ZH: "活动"}
	aShard         = dibs.Text{EN: "shard", ZH: "分片"}
	aClaim         = dibs.Text{EN: "claim", ZH: "订单"}
	aKey           = dibs.Text{EN: "API key", ZH: "API 密钥"}
	aQuarantined   = dibs.Text{EN: "entry in quarantine", ZH: "隔离记录"}
	aRequest       = dibs.Text{EN: "remembered request", ZH: "已记录的请求"}
	anEndpoint     = dibs.Text{EN: "webhook endpoint", ZH: "Webhook 端点"}
	anAnnouncement = dibs.Text{EN: "announcement", ZH: "通知"}
	aList          = dibs.Text{EN: "list of users", ZH: "用户名单"}
	aMerchant      = dibs.Text{EN: "merchant with followers", ZH: "有关注者的商家"}
	anErasure      = dibs.Text{EN: "erasure", ZH: "删除任务"}
	aRoom          = dibs.Text{EN: "waiting room of campaign", ZH: "等候室"}
	aLottery       = dibs.Text{EN: "lottery of campaign", ZH: "活动抽签"}
	aRegistration  = dibs.Text{EN: "registration of", ZH: "登记"}
)

// notFound says that there is no row. what names the thing. id is shown as it
// is.
func notFound(what dibs.Text, id any) *dibs.Error {
	return dibs.Fail(dibs.NotFound, dibs.Text{
		EN: fmt.Sprintf("There is no %s %v", what.EN, id), ZH: fmt.Sprintf("%s %v 不存在", what.ZH, id),
	})
}

// isNoRows reports whether a statement for one row found none.
func isNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// orNotFound returns an error, or NotFound in place of sql.ErrNoRows.
func orNotFound(err error, what dibs.Text, id any) error {
	if isNoRows(err) {
		return notFound(what, id)
	}
	return err
}

// exists says that a key is taken.
func exists(what dibs.Text, id any) *dibs.Error {
	return dibs.Fail(dibs.AlreadyExists, dibs.Text{
		EN: fmt.Sprintf("The %s %v is taken", what.EN, id), ZH: fmt.Sprintf("%s %v 已存在", what.ZH, id),
	})
}

// orExists returns the error of an INSERT, or exists when the key was taken.
func orExists(s *sqldb.Session, err error, what dibs.Text, id any) error {
	if err != nil && s.Fault(err) == sqldb.FaultUnique {
		return exists(what, id)
	}
	return err
}

// changedOrGone says why an UPDATE by key and version found no row: ErrConflict
// when statement finds the id, else NotFound. It reads in the same transaction,
// so that its answer fits the UPDATE.
func changedOrGone(ctx context.Context, s *sqldb.Session, statement string, what dibs.Text, id any) error {
	if err := mustExist(ctx, s, statement, what, id); err != nil {
		return err
	}
	return dibs.ErrConflict
}

// mustExist returns NotFound unless a statement finds an id.
func mustExist(ctx context.Context, s *sqldb.Session, statement string, what dibs.Text, id any) error {
	_, err := sqldb.Get[int](ctx, s, statement, id)
	return orNotFound(err, what, id)
}

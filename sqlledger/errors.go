package sqlledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/events"
)

// errBadState makes database/sql close a connection instead of keeping it.
var errBadState = fmt.Errorf("sqlledger: the connection's state is unknown: %w", driver.ErrBadConn)

// verdicts are the contract's own errors, which pass through unchanged.
var verdicts = []error{
	dibs.ErrConflict, dibs.ErrPositionMoved, events.ErrSinkTaken, dibs.ErrGap, dibs.ErrOwned,
	dibs.ErrFenced, dibs.ErrCorrupt, dibs.ErrForked, ErrSchema, context.Canceled, context.DeadlineExceeded,
}

// explain turns an error of the database into one of the contract. op says
// what was being done.
func (d *dialect) explain(op string, err error) error {
	if err == nil {
		return nil
	}
	var said *dibs.Error
	if errors.As(err, &said) {
		return err
	}
	wrapped := fmt.Errorf("sqlledger: %s: %w", op, d.advised(err))
	var unknown *unknownEffect
	if errors.As(err, &unknown) {
		return dibs.Unavail(dibs.EffectUnknown, wrapped)
	}
	if errors.Is(err, errSlow) {
		return dibs.Unavail(dibs.EffectNone, wrapped)
	}
	for _, v := range verdicts {
		if errors.Is(err, v) {
			return wrapped
		}
	}
	if errors.Is(err, errClosed) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return dibs.Unavail(dibs.EffectNone, wrapped)
	}
	switch d.classify(err) {
	case faultBusy, faultConflict, faultFull, faultIO:
		return dibs.Unavail(dibs.EffectNone, wrapped)
	case faultText:
		return dibs.Invalid(dibs.Fault{Problem: dibs.Text{
			EN: "has characters that the database cannot keep, such as NUL", ZH: "含有数据库无法保存的字符，例如 NUL",
		}})
	case faultCorrupt:
		return fmt.Errorf("sqlledger: %s: %w: %w", op, dibs.ErrCorrupt, err)
	case faultUnique, faultConstraint:
		return fmt.Errorf("sqlledger: %s: a constraint of the database refused it: %w", op, err)
	}
	return wrapped
}

// notFound says that there is no row: what names the thing in both languages.
func notFound(what dibs.Text, id any) *dibs.Error {
	return dibs.Fail(dibs.NotFound, dibs.Text{
		EN: fmt.Sprintf("There is no %s %v", what.EN, id), ZH: fmt.Sprintf("%s %v 不存在", what.ZH, id),
	})
}

// exists says that a key is taken.
func exists(what dibs.Text, id any) *dibs.Error {
	return dibs.Fail(dibs.AlreadyExists, dibs.Text{
		EN: fmt.Sprintf("The %s %v is taken", what.EN, id), ZH: fmt.Sprintf("%s %v 已存在", what.ZH, id),
	})
}

// The things that the ledger keeps, in both languages.
var (
	aProduct     = dibs.Text{EN: "product", ZH: "商品"}
	aCampaign    = dibs.Text{EN: "campaign", ZH: "活动"}
	aShard       = dibs.Text{EN: "shard", ZH: "分片"}
	aClaim       = dibs.Text{EN: "claim", ZH: "订单"}
	aKey         = dibs.Text{EN: "API key", ZH: "API 密钥"}
	aQuarantined = dibs.Text{EN: "entry in quarantine", ZH: "隔离记录"}
	aRequest     = dibs.Text{EN: "remembered request", ZH: "已记录的请求"}
)

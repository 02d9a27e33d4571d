package campaigns

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/live"
)

// CodeView is a code that nobody has claimed.
type CodeView struct {
	Code string `json:"code"`
}

// UnclaimedCodes lists the codes of a campaign that nobody has claimed and that
// were not withdrawn, in the order in which they came. Codes that were granted before
// the call are not among them; while the campaign goes on, any of them may be
// granted in the next moment. *Error of InvalidState for a campaign without codes.
func (s *Campaigns) UnclaimedCodes(ctx context.Context, id string, page dibs.Page) (dibs.List[CodeView], error) {
	var views dibs.List[CodeView]
	c, err := s.registry.Get(ctx, id)
	if err != nil {
		return views, err
	}
	if !c.HasItems() || c.Kind == dibs.RedPacket {
		return views, dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign has no codes", ZH: "该活动没有券码"})
	}
	if page.Cursor == "" {
		if err := s.settler.SettleAll(ctx, c); err != nil {
			return views, err
		}
	}
	list, err := s.cfg.Ledger.FreeItems(ctx, c.Number, page)
	if err != nil {
		return views, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	views.NextCursor = list.NextCursor
	views.Items = make([]CodeView, 0, len(list.Items))
	// An entry in quarantine keeps its items.
	aside, err := s.quarantine.Find(ctx, live.QuarantineFilter{Campaign: c.Number})
	if err != nil {
		return views, dibs.AsUnavailable(err, dibs.EffectNone)
	}
	for _, it := range list.Items {
		if !slices.ContainsFunc(aside, func(q live.Quarantined) bool { return slices.Contains(q.Entry.Items, it.N) }) {
			views.Items = append(views.Items, CodeView{Code: it.Value})
		}
	}
	return views, nil
}

// ImportCodes adds the codes of a CSV file to a campaign of items, a draft or
// one that is published, in one transaction. The file has one code on each
// line, which may be quoted; spaces around it, blank lines, a byte order mark
// and a first line that says `code` are left out. ref makes the import happen
// once, as that of ChangeStock; it may be empty. done, unless nil, is told of the progress.
//
// *Error of InvalidRequest with the lines that cannot be read, that come twice,
// or that the campaign has already, the first of them; of InvalidState for a
// campaign of another kind of stock or one that has ended.
func (s *Campaigns) ImportCodes(ctx context.Context, id string, file io.ReadSeeker, ref string, done func(written int64)) (*dibs.Imported, error) {
	ref, err := newRef(ref, "i-")
	if err != nil {
		return nil, err
	}
	c, err := s.registry.Now(ctx, id)
	if err != nil {
		return nil, err
	}
	made, err := s.cfg.Ledger.StockChanges(ctx, c.Number, ref)
	switch {
	case err != nil:
		return nil, dibs.AsUnavailable(err, dibs.EffectNone)
	case len(made) > 0 && slices.Max(made) < 0:
		return nil, refReused(made[0])
	case len(made) > 0:
		return &dibs.Imported{Replayed: true, Campaign: c}, nil
	}
	if c.Stock.Kind != dibs.Items {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Text{EN: `codes are imported into a campaign of items: "stock":{"items":[]}`, ZH: `只能向 items 类库存导入："stock":{"items":[]}`})
	}
	if c.State != dibs.Draft && c.Ended(s.cfg.Now()) {
		return nil, dibs.Fail(dibs.InvalidState, dibs.Text{EN: "the campaign has ended", ZH: "活动已经结束"})
	}
	count, err := examineCodes(file, dibs.MaxItems-c.Stock.Total)
	if err != nil {
		return nil, err
	}
	if err := s.mayNumber(ctx, c); err != nil {
		return nil, err
	}
	added, err := s.cfg.Ledger.Import(ctx, Import{
		Shard: dibs.ShardID{Campaign: c.Number}, Spread: c.Shards > 1, Ref: ref, Why: "import", Count: count, Done: done,
		Each: func(take func(int, string) error) error { return eachCode(file, take) },
	})
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	if err := s.outbox.Send(ctx); err != nil {
		s.cfg.Logger.Warn("imported codes wait in the outbox", "campaign", c.ID, "err", err)
		wait.Kick(s.outbox.OutboxKick)
	}
	c, err = s.registry.Reread(ctx, id)
	// The same import may have been quicker on another way: then it is this one.
	return &dibs.Imported{Items: added, Replayed: added == 0, Campaign: c}, err
}

// examineCodes counts a file's codes, or lists the first lines that are bad.
func examineCodes(file io.ReadSeeker, room int64) (count int64, err error) {
	var fs []dibs.Fault
	err = eachCode(file, func(line int, code string) error {
		if count++; dibs.IsItem(code) {
			return nil
		}
		problem := dibs.BadItem
		if code == badLine {
			problem = dibs.Text{EN: "must be one code, in quotes or without any", ZH: "每行必须是一个券码，可带引号"}
		}
		if fs = append(fs, LineFault(line, problem)); len(fs) == dibs.MaxListedFaults {
			return dibs.Invalid(fs...)
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case len(fs) > 0:
		return 0, dibs.Invalid(fs...)
	case count == 0:
		return 0, dibs.Invalid(dibs.Fault{Field: "", Problem: dibs.Text{EN: "the file has no codes", ZH: "文件中没有券码"}})
	case count > room:
		return 0, dibs.Invalid(dibs.Fault{Field: "", Problem: dibs.Textf("the file has %d codes, and the campaign has room for %d", "文件中有 %d 个券码，活动还能容纳 %d 个", count, room)})
	}
	return count, nil
}

const (
	// maxCodeLine bounds a line in bytes: a code of the longest characters, in
	// quotes, with room for spaces.
	maxCodeLine = 4 << 10
	// badLine stands for a line that has not one field. No item looks like it.
	badLine = "\x00"
)

// eachCode calls take with every code of a file from its beginning, or with
// badLine where a line cannot be read. A line that is too long costs no more
// memory than others.
func eachCode(file io.ReadSeeker, take func(line int, code string) error) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("dibs: reading the codes: %w", err)
	}
	in := bufio.NewReaderSize(file, maxCodeLine)
	for line := 1; ; line++ {
		raw, end, err := readLine(in)
		if err != nil {
			return fmt.Errorf("dibs: reading the codes: %w", err)
		}
		code := badLine
		if raw != nil {
			code = codeOf(raw, line == 1)
		}
		if code != "" {
			if err := take(line, code); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// readLine reads a line, nil for one that is too long, and reports whether the
// file ends with it.
func readLine(in *bufio.Reader) (raw []byte, end bool, err error) {
	raw, err = in.ReadSlice('\n')
	if raw == nil {
		raw = []byte{}
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		raw = nil
		_, err = in.ReadSlice('\n')
	}
	if end = errors.Is(err, io.EOF); end {
		err = nil
	}
	return raw, end, err
}

var byteOrderMark = []byte("\ufeff")

// codeOf reads a line; empty for one without a code.
func codeOf(raw []byte, first bool) string {
	if first {
		raw = bytes.TrimPrefix(raw, byteOrderMark)
	}
	raw = bytes.TrimSpace(raw)
	code := string(raw)
	if bytes.ContainsAny(raw, `",`) {
		fields, err := csv.NewReader(strings.NewReader(code)).Read()
		if err != nil || len(fields) != 1 {
			return badLine
		}
		if code = strings.TrimSpace(fields[0]); code == "" {
			return badLine
		}
	}
	if first && strings.EqualFold(code, "code") {
		return ""
	}
	if formula(code) {
		code = strings.TrimPrefix(code, "'")
	}
	return code
}

// Cell is a text that others chose as it stands in a file that a spreadsheet opens: with an
// apostrophe before what would be a formula. A file of codes is read without it.
// A user chooses ids and references; an administrator opens the file.
func Cell(text string) string {
	if formula(text) {
		return "'" + text
	}
	return text
}

// formula reports whether a spreadsheet would compute a text behind its apostrophes, also one of
// an East Asian locale, which takes full-width signs for their ASCII ones.
func formula(text string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, "'"))
	return strings.ContainsRune("=+-@\t\r\n＝＋－＠", first)
}

// FreeItem is an item that nobody has.
type FreeItem struct {
	N     uint32
	Value string
}

// Import adds items that are read one by one to a campaign's stock: all of them
// or none.
type Import struct {
	Shard dibs.ShardID
	// Spread divides the items over all shards of the campaign, one after the other.
	Spread bool
	// Ref makes the import happen once.
	Ref string
	Why string
	// Count is how many there are.
	Count int64
	// Each calls take with every item and the line that it stands on, from the
	// first on, each time it is called: a transaction may have to begin again.
	Each func(take func(line int, item string) error) error
	// Done, unless it is nil, is told now and then how many have been written.
	Done func(written int64)
}

// LineFault is a fault of a line of a file.
func LineFault(line int, problem dibs.Text) dibs.Fault {
	return dibs.Fault{Field: "/lines/" + strconv.Itoa(line), Problem: problem}
}

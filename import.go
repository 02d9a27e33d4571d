package dibs

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
)

// Import adds items that are read one by one to a campaign's stock: all of them
// or none.
type Import struct {
	Shard ShardID
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

// Imported is what became of an import.
type Imported struct {
	// Items is how many were added; 0 when Replayed.
	Items int64
	// Replayed says that the same import had been made before.
	Replayed bool
	Campaign *Campaign
}

// ImportCodes adds the codes of a CSV file to a campaign of items, a draft or
// one that is published, in one transaction. The file has one code on each
// line, which may be quoted; spaces around it, blank lines, a byte order mark
// and a first line that says `code` are left out. ref makes the import happen
// once; it may be empty. done, unless nil, is told of the progress.
//
// *Error of InvalidRequest with the lines that cannot be read, that come twice,
// or that the campaign has already, the first of them; of InvalidState for a
// campaign of another kind of stock or one that has ended.
func (s *Service) ImportCodes(ctx context.Context, id string, file io.ReadSeeker, ref string, done func(written int64)) (*Imported, error) {
	if ref == "" {
		ref = newID("i-")
	}
	c, err := s.freshCampaign(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, noSuchCampaign
	}
	if err != nil {
		return nil, err
	}
	made, err := s.ledger.StockChanges(ctx, c.Number, ref, stockRef(ref, -1))
	switch {
	case err != nil:
		return nil, asUnavailable(err, EffectNone)
	case len(made) > 0 && slices.Max(made) < 0:
		return nil, refReused(made[0])
	case len(made) > 0:
		return &Imported{Replayed: true, Campaign: c}, nil
	}
	if c.Stock.Kind != Items {
		return nil, Fail(InvalidState, Text{`codes are imported into a campaign of items: "stock":{"items":[]}`, `只能向 items 类库存导入："stock":{"items":[]}`})
	}
	if c.State == EndedState || c.State != Draft && !s.cfg.Now().Before(c.EndsAt) {
		return nil, Fail(InvalidState, Text{"the campaign has ended", "活动已经结束"})
	}
	count, err := examineCodes(file, MaxItems-c.Stock.Total)
	if err != nil {
		return nil, err
	}
	added, err := s.ledger.Import(ctx, Import{
		Shard: ShardID{Campaign: c.Number}, Ref: ref, Why: "import", Count: count, Done: done,
		Each: func(take func(int, string) error) error { return eachCode(file, take) },
	})
	if err != nil {
		return nil, asUnavailable(err, EffectUnknown)
	}
	if err := s.sendCommands(ctx); err != nil {
		s.log.Warn("imported codes wait in the outbox", "campaign", c.ID, "err", err)
		kick(s.outboxKick)
	}
	c, err = s.freshCampaign(ctx, id)
	// The same import may have been quicker on another way: then it is this one.
	return &Imported{Items: added, Replayed: added == 0, Campaign: c}, err
}

// examineCodes counts a file's codes, or lists the first lines that are bad.
func examineCodes(file io.ReadSeeker, room int64) (count int64, err error) {
	var fs []Fault
	err = eachCode(file, func(line int, code string) error {
		if count++; isItem(code) {
			return nil
		}
		problem := badItem
		if code == badLine {
			problem = Text{"must be one code, in quotes or without any", "每行必须是一个券码，可带引号"}
		}
		if fs = append(fs, LineFault(line, problem)); len(fs) == maxListedFaults {
			return Invalid(fs...)
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case len(fs) > 0:
		return 0, Invalid(fs...)
	case count == 0:
		return 0, Invalid(Fault{"", Text{"the file has no codes", "文件中没有券码"}})
	case count > room:
		return 0, Invalid(Fault{"", Textf("the file has %d codes, and the campaign has room for %d", "文件中有 %d 个券码，活动还能容纳 %d 个", count, room)})
	}
	return count, nil
}

// LineFault is a fault of a line of a file.
func LineFault(line int, problem Text) Fault {
	return Fault{"/lines/" + strconv.Itoa(line), problem}
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
	return code
}

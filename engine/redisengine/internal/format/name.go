package format

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strconv"

	"github.com/dibs-dev/dibs"
)

// A user's name is written as a byte and the rest. The byte is the name's length,
// up to MaxUserLen, or what follows is the name in binary: a whole number of 1 to
// 8 bytes, or a UUID. Most users have such names, and each is kept in the holdings
// for long. lua/shard.lua knows the sizes.
const (
	MaxUserLen = 128
	numberTag  = MaxUserLen // plus the bytes of the number
	uuidTag    = numberTag + 9
	uuidSize   = 16
	uuidText   = 36
)

// AppendName writes a user's name. Every name is written in one way, and no two
// in the same.
func AppendName(buf []byte, user string) []byte {
	if n, ok := numberOf(user); ok {
		size := (bits.Len64(n) + 7) / 8
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], n)
		return append(append(buf, byte(numberTag+size)), b[8-size:]...)
	}
	if id, ok := uuidOf(user); ok {
		return append(append(buf, uuidTag), id[:]...)
	}
	return append(append(buf, byte(len(user))), user...)
}

// numberOf reads a name that is a whole number, written as such are.
func numberOf(user string) (uint64, bool) {
	if len(user) == 0 || len(user) > 20 || user[0] < '1' || user[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(user, 10, 64)
	return n, err == nil
}

// uuidOf reads a name that is a UUID in small letters.
func uuidOf(user string) (id [uuidSize]byte, ok bool) {
	if len(user) != uuidText || user[8] != '-' || user[13] != '-' || user[18] != '-' || user[23] != '-' {
		return id, false
	}
	var digits [2 * uuidSize]byte
	n := copy(digits[:], user[:8])
	n += copy(digits[n:], user[9:13])
	n += copy(digits[n:], user[14:18])
	n += copy(digits[n:], user[19:23])
	copy(digits[n:], user[24:])
	for _, d := range digits {
		if 'A' <= d && d <= 'F' {
			return id, false
		}
	}
	_, err := hex.Decode(id[:], digits[:])
	return id, err == nil
}

// CutName takes a user's name off a string.
func CutName(s string) (user, rest string, err error) {
	if s == "" || s[0] == 0 || s[0] > uuidTag {
		return "", "", dibs.ErrCorrupt
	}
	tag, size := s[0], int(s[0])
	switch {
	case tag == uuidTag:
		size = uuidSize
	case tag > numberTag:
		size -= numberTag
	}
	if len(s) < 1+size {
		return "", "", dibs.ErrCorrupt
	}
	body, rest := s[1:1+size], s[1+size:]
	switch {
	case tag == uuidTag:
		return uuidName(body), rest, nil
	case tag > numberTag:
		var b [8]byte
		copy(b[8-size:], body)
		if b[8-size] == 0 {
			// Written so, a number would have two names.
			return "", "", dibs.ErrCorrupt
		}
		return strconv.FormatUint(binary.BigEndian.Uint64(b[:]), 10), rest, nil
	}
	return body, rest, nil
}

// uuidName writes a UUID.
func uuidName(id string) string {
	digits := hex.EncodeToString([]byte(id))
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

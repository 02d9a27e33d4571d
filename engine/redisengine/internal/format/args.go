package format

import (
	"encoding/binary"
	"strconv"
)

// Itoa writes a whole number.
func Itoa[T ~int | ~uint8 | ~uint16 | ~uint32 | ~int64](n T) string {
	return strconv.FormatInt(int64(n), 10)
}

// Packed writes strings as a msgpack array.
func Packed(values []string) string {
	buf := binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(len(values)))
	for _, v := range values {
		buf = append(binary.BigEndian.AppendUint32(append(buf, 0xdb), uint32(len(v))), v...)
	}
	return string(buf)
}

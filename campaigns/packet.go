package campaigns

import (
	"errors"
	"strconv"
)

var errNoSplit = errors.New("dibs: Config.Split is not set, which divides red packets")

// ShareValue is the value of a red packet's share as an item: its id and its
// amount in minor units, `17:250`. The amount travels with the item, so that
// engines need to know nothing of money and an answer needs no look-up.
func ShareValue(id string, amount int64) string { return id + ":" + strconv.FormatInt(amount, 10) }

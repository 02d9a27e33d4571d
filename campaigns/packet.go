package campaigns

import (
	"errors"
)

var (
	errNoSplit = errors.New("dibs: Config.Split is not set, which divides red packets")
)

package dibs

import "time"

// Product is what is sold or given.
type Product struct {
	ID          string
	Name        string
	Thumbnail   string
	Price       *Money
	Description string
	Comment     string
	// Stock is the regular stock, for regular orders; campaigns have their own.
	Stock int64
	// Version rises with each change; changes compare and set it.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

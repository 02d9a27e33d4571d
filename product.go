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
	// StockLeft is what of it is left.
	Stock     int64
	StockLeft int64
	// PayWithin is the time to pay a regular order; zero means that it is
	// confirmed at once. LatePayment is the rule for payments after it.
	PayWithin   time.Duration
	LatePayment LatePayment
	// Version rises with each change; changes compare and set it.
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
}

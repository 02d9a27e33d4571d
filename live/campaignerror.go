package live

import "github.com/dibs-dev/dibs"

// A CampaignError is what keeps one campaign from going on while others do.
// It names the campaign as administrators know it, so that health can show which one needs them.
type CampaignError struct {
	// Campaign is its id, or `product:ID` for a product's regular orders.
	Campaign string
	Err      error
}

// Error names the campaign before the cause.
func (e *CampaignError) Error() string { return "campaign " + e.Campaign + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CampaignError) Unwrap() error { return e.Err }

// of names the campaign of an error; nil stays nil.
func of(c *dibs.Campaign, err error) error {
	if err == nil {
		return nil
	}
	return &CampaignError{Campaign: c.Name(), Err: err}
}

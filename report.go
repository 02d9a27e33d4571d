package dibs

// Report is the outcome of a verification: engine against ledger, campaign by
// campaign, promise by promise.
type Report struct {
	OK        bool             `json:"ok"`
	Campaigns []CampaignReport `json:"campaigns"`
}

// CampaignReport is one campaign's part of a report.
type CampaignReport struct {
	CampaignID string `json:"campaign_id"`
	OK         bool   `json:"ok"`
	// Stock, Remaining and Granted are units, as the ledger's rows add up.
	Stock     int64          `json:"stock"`
	Remaining int64          `json:"remaining"`
	Granted   int64          `json:"granted"`
	Claims    int64          `json:"claims"`
	Promises  []PromiseCheck `json:"promises"`
}

// PromiseCheck is one promise's verdict.
type PromiseCheck struct {
	// Promise is its short name, `no oversell`.
	Promise string `json:"promise"`
	Held    bool   `json:"held"`
	// Detail says what was compared, or what is broken.
	Detail string `json:"detail"`
}

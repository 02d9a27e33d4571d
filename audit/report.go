package audit

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
	Stock     int64 `json:"stock"`
	Remaining int64 `json:"remaining"`
	Granted   int64 `json:"granted"`
	Claims    int64 `json:"claims"`
	// Quarantined is how many journal entries could not be settled.
	Quarantined int64          `json:"quarantined"`
	Promises    []PromiseCheck `json:"promises"`
}

// PromiseCheck is one promise's verdict.
type PromiseCheck struct {
	// Promise is its short name, `no oversell`.
	Promise string `json:"promise"`
	Held    bool   `json:"held"`
	// Detail says what was compared, or what is broken.
	Detail string `json:"detail"`
}

// RepairRequest says what to repair, and what to do where nobody but an
// administrator can know.
type RepairRequest struct {
	// Campaigns are ids, or `product:ID` for a product's regular orders; none for all.
	Campaigns []string
	// OlderLedger is what to do about campaigns whose ledger is older than their
	// journal; empty leaves them halted.
	OlderLedger OlderLedger
}

// RepairReport is the outcome of a repair.
type RepairReport struct {
	// OK is whether every promise holds after it.
	OK     bool    `json:"ok"`
	Before *Report `json:"before"`
	// Steps are what was done, and what was left undone, in order.
	Steps []RepairStep `json:"steps"`
	After *Report      `json:"after"`
}

// RepairStep is one thing that a repair did, or could not do.
type RepairStep struct {
	CampaignID string `json:"campaign_id"`
	Done       bool   `json:"done"`
	// What says what was done, or what is wrong and what to do about it.
	What string `json:"what"`
}

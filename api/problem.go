package api

import (
	"time"

	"github.com/dibs-dev/dibs"
)

// Problem is a refusal or an error as answered: RFC 9457 with dibs' fields.
type Problem struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Reason    string         `json:"reason"`
	Code      int            `json:"code"`
	Retryable bool           `json:"retryable"`
	RequestID string         `json:"request_id"`
	Errors    []ProblemFault `json:"errors,omitempty"`
	Effect    dibs.Effect    `json:"effect,omitempty"`
	// The rest belongs to single reasons: not_started, ended, sold_out,
	// limit_reached, waiting.
	StartsAt  *time.Time `json:"starts_at,omitempty"`
	EndsAt    *time.Time `json:"ends_at,omitempty"`
	Remaining *int64     `json:"remaining,omitempty"`
	ClaimIDs  []string   `json:"claim_ids,omitempty"`
	Position  *int64     `json:"position,omitempty"`
	// ResultCode belongs to red packets: "1" for limit_reached, "-1" for sold_out.
	ResultCode string `json:"result_code,omitempty"`
}

// ProblemFault is one thing wrong with an input.
type ProblemFault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// Package campaigns drafts, publishes and changes campaigns, their stock and codes,
// and the products that they sell.
package campaigns

// Package orders moves claims through their life: payment, cancelling, expiry,
// refund, redemption, shipping. It also sells products' own stock, without a
// campaign, and searches for orders.
package orders

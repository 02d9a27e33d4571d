// Package trial has the verbs that try a sale out before it happens: rehearse and
// lab.
package trial

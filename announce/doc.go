// Package announce tells followers of campaigns: a merchant's followers first come
// first, at once or at a rate, so that they do not all arrive in one second.
package announce

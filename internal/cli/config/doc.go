// Package config has every setting of the program dibs: its flag, variable, key
// in the file and documentation, the rules that its value must keep, and what the
// rest of the program makes of it.
package config

// Package config has every setting of the program dibs: its flag, variable, key in the file and
// documentation, the rules that its value must keep, and what the rest of the program makes of it.
//
// Basics: a verb calls AddFlags for the flags that it takes, then Load or Read with the rules that it
// needs: ClientRules to call a server, StoreRules to open engine and ledger, ServerRules with
// ServeRules or DevRules to be a server, TokenRules to sign tokens. All faults come at once, each with
// the source of the value.
//
// Caveats: rules judge form and combination, and connect to nothing, except for files that settings
// name, which they read. Faults and names for people never repeat a password.
package config

// Package clitest runs the verbs of the program dibs in the test's own process, with
// real servers where they need one. cmd/dibs has the tests that need processes.
package clitest

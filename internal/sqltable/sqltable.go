// Package sqltable makes the tables that packages beside the ledger keep in a
// database of their user's.
package sqltable

import (
	"context"
	"database/sql"
	"errors"
)

// made are the errors that PostgreSQL gives one of two who make a table at the
// same time, in spite of IF NOT EXISTS: a key of its own tables, a table, a type
// is there twice.
var made = map[string]bool{"23505": true, "42P07": true, "42710": true}

// mostTries is how often a table is made that others make, too.
const mostTries = 4

// Make runs a CREATE TABLE IF NOT EXISTS, beside others who may do so as well.
// The database's error; safe for concurrent use.
func Make(ctx context.Context, db *sql.DB, create string) (err error) {
	for range mostTries {
		_, err = db.ExecContext(ctx, create)
		// Both drivers of PostgreSQL have it.
		var state interface{ SQLState() string }
		if !errors.As(err, &state) || !made[state.SQLState()] {
			return err
		}
	}
	return err
}

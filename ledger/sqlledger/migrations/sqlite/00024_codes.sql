-- Items may be stored encrypted; internal/keyring says how.

-- +goose Up
-- Nothing changes here. The number keeps a version of dibs that knows plain items alone,
-- and would hand out encrypted ones as they are, from opening this ledger.
SELECT 1;

-- +goose Down
SELECT 1;

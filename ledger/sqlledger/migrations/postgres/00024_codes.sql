-- Items may be stored encrypted; migrations/sqlite says why this changes nothing.

-- +goose Up
SELECT 1;

-- +goose Down
SELECT 1;

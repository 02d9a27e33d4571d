-- The payments that are due; migrations/sqlite says what the index is for. MySQL has no index of some rows alone: this one
-- has all, in the order of their places, so that it grows at its end.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE payments ADD INDEX payments_due (due)')
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'payments' AND index_name = 'payments_due');
PREPARE change_payments FROM @change;
EXECUTE change_payments;
DEALLOCATE PREPARE change_payments;

-- +goose Down
ALTER TABLE payments DROP INDEX payments_due;

-- Erasures of users, and what they may change of rows that never change.

-- +goose Up
-- Whose erasure it is, and what stands in the user's place, is here until it is
-- done, and nowhere else. Waits is a JSON list, erased a JSON object.
CREATE TABLE erasures (
    id            TEXT    NOT NULL PRIMARY KEY,
    user_id       TEXT    UNIQUE,
    pseudonym     TEXT    NOT NULL,
    leave_balance INTEGER NOT NULL CHECK (leave_balance IN (0, 1)),
    state         TEXT    NOT NULL,
    step          TEXT    NOT NULL,
    place         TEXT    NOT NULL,
    changed       INTEGER NOT NULL,
    clean_since   INTEGER NOT NULL,
    waits         TEXT    NOT NULL,
    erased        TEXT    NOT NULL,
    requested_at  INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    done_at       INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    CHECK ((state = 'done') = (user_id IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX erasures_by_time ON erasures (requested_at, id);

DROP TRIGGER claim_events_stay;
-- +goose StatementBegin
CREATE TRIGGER claim_events_stay BEFORE UPDATE ON claim_events
WHEN NOT (OLD.step = 'ship' AND NEW.facts = x'' AND NEW.campaign = OLD.campaign AND NEW.shard = OLD.shard AND NEW.epoch = OLD.epoch
    AND NEW.seq = OLD.seq AND NEW.n = OLD.n AND NEW.step = OLD.step AND NEW.status = OLD.status AND NEW.at = OLD.at)
BEGIN
    SELECT RAISE(ABORT, 'an event never changes, but that it forgets where goods went');
END;
-- +goose StatementEnd

DROP TRIGGER entries_stay;
-- +goose StatementBegin
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
WHEN NOT (OLD.kind = 'user' AND NEW.owner LIKE 'erased-%' AND NEW.campaign = OLD.campaign AND NEW.shard = OLD.shard AND NEW.epoch = OLD.epoch
    AND NEW.seq = OLD.seq AND NEW.what = OLD.what AND NEW.ref = OLD.ref AND NEW.side = OLD.side AND NEW.kind = OLD.kind
    AND NEW.currency = OLD.currency AND NEW.amount = OLD.amount AND NEW.at = OLD.at)
BEGIN
    SELECT RAISE(ABORT, 'an entry never changes, but that its owner is erased');
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER entries_stay;
-- +goose StatementBegin
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'an entry never changes');
END;
-- +goose StatementEnd
DROP TRIGGER claim_events_stay;
-- +goose StatementBegin
CREATE TRIGGER claim_events_stay BEFORE UPDATE ON claim_events
BEGIN
    SELECT RAISE(ABORT, 'an event never changes');
END;
-- +goose StatementEnd
DROP TABLE erasures;

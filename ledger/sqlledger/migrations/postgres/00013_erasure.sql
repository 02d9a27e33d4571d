-- Erasures of users; migrations/sqlite says what the columns are for.

-- +goose Up
CREATE TABLE erasures (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id       TEXT COLLATE "C" UNIQUE,
    pseudonym     TEXT     NOT NULL,
    leave_balance SMALLINT NOT NULL CHECK (leave_balance IN (0, 1)),
    state         TEXT     NOT NULL,
    step          TEXT     NOT NULL,
    place         TEXT     NOT NULL,
    changed       BIGINT   NOT NULL,
    clean_since   BIGINT   NOT NULL,
    waits         TEXT     NOT NULL,
    erased        TEXT     NOT NULL,
    requested_at  BIGINT   NOT NULL,
    updated_at    BIGINT   NOT NULL,
    done_at       BIGINT   NOT NULL,
    version       BIGINT   NOT NULL,
    CHECK ((state = 'done') = (user_id IS NULL))
);

CREATE INDEX erasures_by_time ON erasures (requested_at, id);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION claim_events_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF OLD.step = 'ship' AND NEW.facts = ''::bytea AND (NEW.campaign, NEW.shard, NEW.epoch, NEW.seq, NEW.n, NEW.step, NEW.status, NEW.at)
            = (OLD.campaign, OLD.shard, OLD.epoch, OLD.seq, OLD.n, OLD.step, OLD.status, OLD.at) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'an event never changes, but that it forgets where goods went' USING ERRCODE = 'check_violation';
END;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF OLD.kind = 'user' AND NEW.owner LIKE 'erased-%' AND (NEW.campaign, NEW.shard, NEW.epoch, NEW.seq, NEW.what, NEW.ref, NEW.side, NEW.kind,
            NEW.currency, NEW.amount, NEW.at) = (OLD.campaign, OLD.shard, OLD.epoch, OLD.seq, OLD.what, OLD.ref, OLD.side, OLD.kind,
            OLD.currency, OLD.amount, OLD.at) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'an entry never changes, but that its owner is erased' USING ERRCODE = 'check_violation';
END;
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an entry never changes' USING ERRCODE = 'check_violation';
END;
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION claim_events_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an event never changes' USING ERRCODE = 'check_violation';
END;
$$;
-- +goose StatementEnd
DROP TABLE erasures;

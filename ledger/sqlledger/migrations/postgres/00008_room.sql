-- Waiting rooms and lotteries; migrations/sqlite says what the tables are for.

-- +goose Up
CREATE TABLE lotteries (
    campaign     INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    seed         TEXT    NOT NULL,
    winners      BIGINT  NOT NULL CHECK (winners > 0),
    committed_at BIGINT  NOT NULL,
    closed_at    BIGINT  NOT NULL,
    entries      BIGINT  NOT NULL CHECK (entries >= 0),
    list_hash    TEXT    NOT NULL,
    public_value TEXT    NOT NULL,
    cutoff       TEXT    NOT NULL,
    drawn_at     BIGINT  NOT NULL,
    version      BIGINT  NOT NULL
);

CREATE TABLE lottery_entries (
    campaign INTEGER NOT NULL REFERENCES lotteries (campaign),
    user_id  TEXT COLLATE "C" NOT NULL,
    entry    TEXT COLLATE "C" NOT NULL,
    nonce    TEXT    NOT NULL,
    at       BIGINT  NOT NULL,
    PRIMARY KEY (campaign, user_id),
    UNIQUE (campaign, entry)
);

CREATE TABLE rooms (
    campaign       INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    tail           BIGINT  NOT NULL,
    early          BIGINT  NOT NULL,
    seed           TEXT    NOT NULL,
    admitted_micro BIGINT  NOT NULL,
    at             BIGINT  NOT NULL
);

CREATE TABLE room_places (
    campaign INTEGER NOT NULL REFERENCES rooms (campaign),
    number   BIGINT  NOT NULL CHECK (number > 0),
    user_id  TEXT    NOT NULL,
    PRIMARY KEY (campaign, number)
);

-- +goose Down
DROP TABLE room_places;
DROP TABLE rooms;
DROP TABLE lottery_entries;
DROP TABLE lotteries;

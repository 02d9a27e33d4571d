-- The ledger: the lasting truth of products, campaigns, claims and items.
-- Times are milliseconds since 1970. Amounts are minor units; an empty
-- currency means that there is no amount. The constraints repeat the promises
-- of the engine as the last line of defence: they must never fire.

-- +goose Up
CREATE TABLE products (
    id          TEXT    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    thumbnail   TEXT    NOT NULL,
    price       INTEGER NOT NULL CHECK (price >= 0),
    currency    TEXT    NOT NULL,
    status      INTEGER NOT NULL,
    stock       INTEGER NOT NULL CHECK (stock >= 0),
    stock_left  INTEGER NOT NULL CHECK (stock_left >= 0 AND stock_left <= stock),
    description TEXT    NOT NULL,
    comment     TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE campaigns (
    number         INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    kind           TEXT    NOT NULL,
    title          TEXT    NOT NULL,
    product_id     TEXT    NOT NULL,
    comment        TEXT    NOT NULL,
    starts_at      INTEGER NOT NULL,
    ends_at        INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    stock_kind     TEXT    NOT NULL,
    -- What the campaign was created with; stock_total follows restocks and
    -- withdrawals, stock_left what was granted and settled besides.
    stock_initial  INTEGER NOT NULL CHECK (stock_initial >= 0),
    stock_total    INTEGER NOT NULL CHECK (stock_total >= 0),
    stock_left     INTEGER NOT NULL CHECK (stock_left >= 0 AND stock_left <= stock_total),
    code_pattern   TEXT    NOT NULL,
    limit_per_user INTEGER NOT NULL CHECK (limit_per_user >= 1),
    price_amount   INTEGER NOT NULL CHECK (price_amount >= 0),
    price_currency TEXT    NOT NULL,
    pay_within_ms  INTEGER NOT NULL CHECK (pay_within_ms >= 0),
    late_payment   TEXT    NOT NULL,
    shards         INTEGER NOT NULL CHECK (shards >= 1 AND shards <= 256),
    version        INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    CHECK (number <= 268435455)
) STRICT;

CREATE INDEX campaigns_by_state ON campaigns (state);

-- One row per shard of a campaign: the committed position of its journal, and
-- the sums of its claims in units.
CREATE TABLE positions (
    campaign   INTEGER NOT NULL REFERENCES campaigns (number),
    shard      INTEGER NOT NULL CHECK (shard >= 0 AND shard <= 255),
    epoch      INTEGER NOT NULL CHECK (epoch >= 0 AND epoch <= 4095),
    pos_epoch  INTEGER NOT NULL CHECK (pos_epoch >= 0 AND pos_epoch <= epoch),
    pos_seq    INTEGER NOT NULL CHECK (pos_seq >= 0),
    stock      INTEGER NOT NULL CHECK (stock >= 0),
    stock_left INTEGER NOT NULL CHECK (stock_left >= 0 AND stock_left <= stock),
    pending    INTEGER NOT NULL CHECK (pending >= 0),
    confirmed  INTEGER NOT NULL CHECK (confirmed >= 0),
    released   INTEGER NOT NULL CHECK (released >= 0),
    refunded   INTEGER NOT NULL CHECK (refunded >= 0),
    PRIMARY KEY (campaign, shard)
) STRICT, WITHOUT ROWID;

-- The primary key is the place in the journal, so that rows arrive in order.
-- The index by user is the only one in random order, and the main cost of a
-- claim: think twice before adding another.
CREATE TABLE claims (
    campaign    INTEGER NOT NULL,
    shard       INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    user_id     TEXT    NOT NULL,
    quantity    INTEGER NOT NULL CHECK (quantity > 0),
    status      INTEGER NOT NULL CHECK (status IN (-1, 0, 1, 2)),
    order_type  INTEGER NOT NULL,
    amount      INTEGER NOT NULL,
    currency    TEXT    NOT NULL,
    request_key INTEGER NOT NULL,
    restocked   INTEGER NOT NULL CHECK (restocked IN (0, 1)),
    pay_by      INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX claims_by_user ON claims (user_id, created_at);

-- One row per code or seat. An item's claim lies in the item's own shard, and
-- exists.
CREATE TABLE items (
    campaign    INTEGER NOT NULL,
    n           INTEGER NOT NULL CHECK (n >= 0),
    value       TEXT    NOT NULL,
    shard       INTEGER NOT NULL,
    claim_epoch INTEGER,
    claim_seq   INTEGER,
    withdrawn   INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1)),
    PRIMARY KEY (campaign, n),
    UNIQUE (campaign, value),
    FOREIGN KEY (campaign, shard, claim_epoch, claim_seq) REFERENCES claims (campaign, shard, epoch, seq),
    CHECK ((claim_epoch IS NULL) = (claim_seq IS NULL)),
    CHECK (withdrawn = 0 OR claim_epoch IS NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX items_by_claim ON items (campaign, shard, claim_epoch, claim_seq) WHERE claim_epoch IS NOT NULL;

-- +goose StatementBegin
CREATE TRIGGER items_one_claim BEFORE UPDATE OF claim_epoch, claim_seq ON items
WHEN OLD.claim_epoch IS NOT NULL AND NEW.claim_epoch IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'the item belongs to another claim');
END;
-- +goose StatementEnd

-- Every change of a campaign's stock after its creation.
CREATE TABLE adjustments (
    campaign INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    ref      TEXT    NOT NULL,
    delta    INTEGER NOT NULL,
    why      TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (campaign, ref),
    FOREIGN KEY (campaign, shard) REFERENCES positions (campaign, shard)
) STRICT, WITHOUT ROWID;

-- Commands to the engine that wait to be carried out.
CREATE TABLE outbox (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    payload  BLOB    NOT NULL
) STRICT;

CREATE TABLE api_keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT;

-- Remembered answers of admin requests.
CREATE TABLE requests (
    caller      TEXT    NOT NULL,
    request_key TEXT    NOT NULL,
    hash        BLOB    NOT NULL,
    status      INTEGER NOT NULL,
    body        BLOB    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (caller, request_key)
) STRICT;

CREATE INDEX requests_by_age ON requests (at);

CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

-- +goose Down
DROP TABLE secrets;
DROP TABLE requests;
DROP TABLE api_keys;
DROP TABLE outbox;
DROP TABLE adjustments;
DROP TABLE items;
DROP TABLE claims;
DROP TABLE positions;
DROP TABLE campaigns;
DROP TABLE products;

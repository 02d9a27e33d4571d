PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO goose_db_version VALUES(1,0,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(2,1,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(3,2,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(4,3,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(5,4,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(6,5,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(7,6,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(8,7,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(9,8,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(10,9,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(11,11,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(12,12,1,'2026-11-22 23:30:20');
INSERT INTO goose_db_version VALUES(13,13,1,'2026-11-22 23:30:20');
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
, pay_within_ms INTEGER NOT NULL DEFAULT 0 CHECK (pay_within_ms >= 0), late_payment TEXT NOT NULL DEFAULT 'reclaim') STRICT;
INSERT INTO products VALUES('phone','Phone','',99900,'CNY',1,0,0,'','',1,1795390220818,1795390220818,0,'reclaim');
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
    updated_at     INTEGER NOT NULL, valid_for_ms INTEGER NOT NULL DEFAULT 0 CHECK (valid_for_ms >= 0), valid_until INTEGER NOT NULL DEFAULT 0 CHECK (valid_until >= 0), tiers TEXT NOT NULL DEFAULT '', low_stock INTEGER NOT NULL DEFAULT 0 CHECK (low_stock >= 0), low_since INTEGER NOT NULL DEFAULT 0 CHECK (low_since >= 0), gate TEXT NOT NULL DEFAULT '',
    CHECK (number <= 268435455)
) STRICT;
INSERT INTO campaigns VALUES(1,'phones','sale','Phones','phone','',1767225600000,2082758400000,'published','units',10,10,7,'',1,99900,'CNY',0,'reclaim',1,2,1795390220950,1795390220954,0,0,'',0,0,'');
INSERT INTO campaigns VALUES(2,'spring','coupon','Spring','','',1767225600000,2082758400000,'published','items',0,8,5,'',1,0,'',0,'reclaim',1,2,1795390221094,1795390221434,0,0,'',0,0,'');
INSERT INTO campaigns VALUES(3,'rain','redpacket','Rain','','',1767225600000,2082758400000,'published','shares',6,6,3,'',1,0,'',0,'reclaim',1,2,1795390221499,1795390221500,0,0,'',0,0,'');
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
INSERT INTO positions VALUES(1,0,2,2,1,10,7,0,3,0,0);
INSERT INTO positions VALUES(2,0,2,2,1,8,5,0,3,0,0);
INSERT INTO positions VALUES(3,0,2,2,1,6,3,0,3,0,0);
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
    created_at  INTEGER NOT NULL, steps INTEGER NOT NULL DEFAULT 0 CHECK (steps >= 0),
    PRIMARY KEY (campaign, shard, epoch, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO claims VALUES(1,0,1,2,'u1',1,1,2,99900,'CNY',5608538486514296716,0,0,1795390221530,0);
INSERT INTO claims VALUES(1,0,1,3,'u2',1,1,2,99900,'CNY',-404239861986184106,0,0,1795390221833,0);
INSERT INTO claims VALUES(1,0,1,4,'u3',1,1,2,99900,'CNY',-7002089256801771752,0,0,1795390222261,0);
INSERT INTO claims VALUES(2,0,1,2,'u1',1,1,2,0,'',2599959739274165400,0,0,1795390221602,0);
INSERT INTO claims VALUES(2,0,1,3,'u2',1,1,2,0,'',-9205346557594926357,0,0,1795390221892,0);
INSERT INTO claims VALUES(2,0,1,4,'u3',1,1,2,0,'',-1554532481832362468,0,0,1795390222343,0);
INSERT INTO claims VALUES(3,0,1,2,'u1',1,1,2,0,'',4227052854109250816,0,0,1795390221755,0);
INSERT INTO claims VALUES(3,0,1,3,'u2',1,1,2,0,'',-7567157572086576628,0,0,1795390222070,0);
INSERT INTO claims VALUES(3,0,1,4,'u3',1,1,2,0,'',1276850599357329376,0,0,1795390222447,0);
CREATE TABLE items (
    campaign    INTEGER NOT NULL,
    n           INTEGER NOT NULL CHECK (n >= 0),
    value       TEXT    NOT NULL,
    shard       INTEGER NOT NULL,
    claim_epoch INTEGER,
    claim_seq   INTEGER,
    withdrawn   INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1)), amount INTEGER NOT NULL DEFAULT 0 CHECK (amount >= 0),
    PRIMARY KEY (campaign, n),
    UNIQUE (campaign, value),
    FOREIGN KEY (campaign, shard, claim_epoch, claim_seq) REFERENCES claims (campaign, shard, epoch, seq),
    CHECK ((claim_epoch IS NULL) = (claim_seq IS NULL)),
    CHECK (withdrawn = 0 OR claim_epoch IS NULL)
) STRICT, WITHOUT ROWID;
INSERT INTO items VALUES(2,0,'SPRING-1',0,1,2,0,0);
INSERT INTO items VALUES(2,1,'SPRING-2',0,1,3,0,0);
INSERT INTO items VALUES(2,2,'SPRING-3',0,1,4,0,0);
INSERT INTO items VALUES(2,3,'SPRING-4',0,NULL,NULL,0,0);
INSERT INTO items VALUES(2,4,'SPRING-5',0,NULL,NULL,0,0);
INSERT INTO items VALUES(2,5,'SPRING-6',0,NULL,NULL,0,0);
INSERT INTO items VALUES(2,6,'SPRING-7',0,NULL,NULL,0,0);
INSERT INTO items VALUES(2,7,'SPRING-8',0,NULL,NULL,0,0);
INSERT INTO items VALUES(3,0,'1:677',0,1,2,0,677);
INSERT INTO items VALUES(3,1,'2:2095',0,1,3,0,2095);
INSERT INTO items VALUES(3,2,'3:1459',0,1,4,0,1459);
INSERT INTO items VALUES(3,3,'4:1661',0,NULL,NULL,0,1661);
INSERT INTO items VALUES(3,4,'5:2949',0,NULL,NULL,0,2949);
INSERT INTO items VALUES(3,5,'6:1159',0,NULL,NULL,0,1159);
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
INSERT INTO adjustments VALUES(2,0,'i-D33MVW4ZMAZD',8,'import',1795390221400);
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
INSERT INTO api_keys VALUES('k-Q2H5OYDC2TXH','serve','admin',X'bb96f45ff2232b0e1b423d4c0b03a383c1715e45e39d3d794c11eeedf23802f2',1795390220589,0);
CREATE TABLE requests (
    caller      TEXT    NOT NULL,
    request_key TEXT    NOT NULL,
    hash        BLOB    NOT NULL,
    status      INTEGER NOT NULL,
    body        BLOB    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (caller, request_key)
) STRICT;
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
INSERT INTO secrets VALUES('claim-id',X'421d2f2a78785aa3c0eb811865981f53');
INSERT INTO secrets VALUES('gate',X'cabb9cff5f4ff0c842fa2d4fb5dd4053ed9f585d52ccecd2634917e37fb03fc5');
CREATE TABLE quarantine (
    campaign    INTEGER NOT NULL,
    shard       INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    user_id     TEXT NOT NULL,
    quantity    INTEGER NOT NULL,
    counted     INTEGER NOT NULL CHECK (counted >= 0),
    status      INTEGER NOT NULL,
    request_key INTEGER NOT NULL,
    ref         TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    pay_by      INTEGER NOT NULL,
    items       TEXT NOT NULL,
    why         TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard) REFERENCES positions (campaign, shard)
) STRICT, WITHOUT ROWID;
CREATE TABLE claim_events (
    campaign INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    n        INTEGER NOT NULL CHECK (n >= 1),
    step     TEXT    NOT NULL,
    status   INTEGER NOT NULL CHECK (status IN (-1, 0, 1, 2)),
    at       INTEGER NOT NULL,
    facts    BLOB    NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq, n),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE payments (
    campaign INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    ref      TEXT    NOT NULL,
    amount   INTEGER NOT NULL CHECK (amount >= 0),
    currency TEXT    NOT NULL,
    refunded INTEGER NOT NULL CHECK (refunded >= 0 AND refunded <= amount),
    due      INTEGER NOT NULL CHECK (due IN (0, 1)),
    at       INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE packets (
    campaign       INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    sender_id      TEXT    NOT NULL,
    total_amount   INTEGER NOT NULL CHECK (total_amount > 0),
    total_currency TEXT    NOT NULL,
    share_count    INTEGER NOT NULL CHECK (share_count > 0),
    split          TEXT    NOT NULL,
    share_min      INTEGER NOT NULL CHECK (share_min > 0),
    share_max      INTEGER NOT NULL CHECK (share_max >= 0),
    funded_at      INTEGER NOT NULL CHECK (funded_at >= 0),
    returned_at    INTEGER NOT NULL CHECK (returned_at >= 0),
    credited       INTEGER NOT NULL CHECK (credited >= 0),
    returned       INTEGER NOT NULL CHECK (returned >= 0),
    credit_epoch   INTEGER NOT NULL,
    credit_seq     INTEGER NOT NULL,
    CHECK (credited + returned <= total_amount)
) STRICT;
INSERT INTO packets VALUES(3,'',10000,'CNY',6,'double_mean',1,0,1795390221500,0,4231,0,1,4);
CREATE TABLE accounts (
    kind     TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    currency TEXT    NOT NULL,
    balance  INTEGER NOT NULL CHECK (balance > -9007199254740992 AND balance < 9007199254740992),
    PRIMARY KEY (kind, owner, currency),
    CHECK (balance >= 0 OR kind IN ('platform', 'outside'))
) STRICT, WITHOUT ROWID;
INSERT INTO accounts VALUES('escrow','rain','CNY',5769);
INSERT INTO accounts VALUES('outside','','CNY',0);
INSERT INTO accounts VALUES('platform','','CNY',-10000);
INSERT INTO accounts VALUES('user','u1','CNY',677);
INSERT INTO accounts VALUES('user','u2','CNY',2095);
INSERT INTO accounts VALUES('user','u3','CNY',1459);
CREATE TABLE entries (
    campaign INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    what     TEXT    NOT NULL,
    ref      TEXT    NOT NULL,
    side     INTEGER NOT NULL CHECK (side IN (0, 1)),
    kind     TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    currency TEXT    NOT NULL,
    amount   INTEGER NOT NULL CHECK (side = 0 AND amount < 0 OR side = 1 AND amount > 0),
    at       INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq, what, ref, side)
) STRICT, WITHOUT ROWID;
INSERT INTO entries VALUES(3,0,0,0,'fund','',0,'platform','','CNY',-10000,1795390221500);
INSERT INTO entries VALUES(3,0,0,0,'fund','',1,'escrow','rain','CNY',10000,1795390221500);
INSERT INTO entries VALUES(3,0,1,2,'credit','',0,'escrow','rain','CNY',-677,1795390222030);
INSERT INTO entries VALUES(3,0,1,2,'credit','',1,'user','u1','CNY',677,1795390222030);
INSERT INTO entries VALUES(3,0,1,3,'credit','',0,'escrow','rain','CNY',-2095,1795390222566);
INSERT INTO entries VALUES(3,0,1,3,'credit','',1,'user','u2','CNY',2095,1795390222566);
INSERT INTO entries VALUES(3,0,1,4,'credit','',0,'escrow','rain','CNY',-1459,1795390222566);
INSERT INTO entries VALUES(3,0,1,4,'credit','',1,'user','u3','CNY',1459,1795390222566);
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 VALUES('items','items','1000000 100000 1');
INSERT INTO sqlite_stat1 VALUES('items','sqlite_autoindex_items_2','1000000 100000 1');
INSERT INTO sqlite_stat1 VALUES('items','items_by_claim','1000000 100000 100000 50000 1');
ANALYZE sqlite_schema;
CREATE TABLE feed_head (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    last_id INTEGER NOT NULL CHECK (last_id >= 0)
) STRICT;
INSERT INTO feed_head VALUES(1,12);
CREATE TABLE feed (
    id      INTEGER NOT NULL PRIMARY KEY,
    kind    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    payload BLOB    NOT NULL
) STRICT;
INSERT INTO feed VALUES(1,'campaign',1795390220954,X'7b226368616e6765223a227075626c6973686564222c2263616d706169676e5f6964223a2270686f6e6573222c226b696e64223a2273616c65222c227469746c65223a2250686f6e6573222c227374617465223a227075626c6973686564222c227374617274735f6174223a22323032362d30312d30315430303a30303a30305a222c22656e64735f6174223a22323033362d30312d30315430303a30303a30305a222c2273746f636b223a31302c2273746f636b5f6c656674223a31307d');
INSERT INTO feed VALUES(2,'campaign',1795390221434,X'7b226368616e6765223a227075626c6973686564222c2263616d706169676e5f6964223a22737072696e67222c226b696e64223a22636f75706f6e222c227469746c65223a22537072696e67222c227374617465223a227075626c6973686564222c227374617274735f6174223a22323032362d30312d30315430303a30303a30305a222c22656e64735f6174223a22323033362d30312d30315430303a30303a30305a222c2273746f636b223a382c2273746f636b5f6c656674223a387d');
INSERT INTO feed VALUES(3,'campaign',1795390221500,X'7b226368616e6765223a227075626c6973686564222c2263616d706169676e5f6964223a227261696e222c226b696e64223a227265647061636b6574222c227469746c65223a225261696e222c227374617465223a227075626c6973686564222c227374617274735f6174223a22323032362d30312d30315430303a30303a30305a222c22656e64735f6174223a22323033362d30312d30315430303a30303a30305a222c2273746f636b223a362c2273746f636b5f6c656674223a367d');
INSERT INTO feed VALUES(4,'grants',1795390221530,X'7b2263616d706169676e223a312c227368617264223a302c2266726f6d223a5b312c315d2c22746f223a5b312c325d7d');
INSERT INTO feed VALUES(5,'grants',1795390221602,X'7b2263616d706169676e223a322c227368617264223a302c2266726f6d223a5b312c315d2c22746f223a5b312c325d7d');
INSERT INTO feed VALUES(6,'grants',1795390221755,X'7b2263616d706169676e223a332c227368617264223a302c2266726f6d223a5b312c315d2c22746f223a5b312c325d7d');
INSERT INTO feed VALUES(7,'grants',1795390221833,X'7b2263616d706169676e223a312c227368617264223a302c2266726f6d223a5b312c325d2c22746f223a5b312c335d7d');
INSERT INTO feed VALUES(8,'grants',1795390221892,X'7b2263616d706169676e223a322c227368617264223a302c2266726f6d223a5b312c325d2c22746f223a5b312c335d7d');
INSERT INTO feed VALUES(9,'grants',1795390222070,X'7b2263616d706169676e223a332c227368617264223a302c2266726f6d223a5b312c325d2c22746f223a5b312c335d7d');
INSERT INTO feed VALUES(10,'grants',1795390222261,X'7b2263616d706169676e223a312c227368617264223a302c2266726f6d223a5b312c335d2c22746f223a5b312c345d7d');
INSERT INTO feed VALUES(11,'grants',1795390222343,X'7b2263616d706169676e223a322c227368617264223a302c2266726f6d223a5b312c335d2c22746f223a5b312c345d7d');
INSERT INTO feed VALUES(12,'grants',1795390222447,X'7b2263616d706169676e223a332c227368617264223a302c2266726f6d223a5b312c335d2c22746f223a5b312c345d7d');
CREATE TABLE sinks (
    name        TEXT    NOT NULL PRIMARY KEY,
    taken       INTEGER NOT NULL CHECK (taken >= 0),
    owner       TEXT    NOT NULL,
    lease_until INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    published   INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    problem     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE webhook_endpoints (
    id              TEXT    NOT NULL PRIMARY KEY,
    url             TEXT    NOT NULL,
    description     TEXT    NOT NULL,
    types           TEXT    NOT NULL,
    secret          TEXT    NOT NULL,
    old_secret      TEXT    NOT NULL,
    old_until       INTEGER NOT NULL,
    disabled        INTEGER NOT NULL CHECK (disabled IN (0, 1)),
    disabled_reason TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
, failing_since INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE webhook_deliveries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint   TEXT    NOT NULL REFERENCES webhook_endpoints (id),
    event_id   TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    status     TEXT    NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts   INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    answer     INTEGER NOT NULL,
    problem    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (endpoint, event_id)
) STRICT;
CREATE TABLE lotteries (
    campaign     INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    seed         TEXT    NOT NULL,
    winners      INTEGER NOT NULL CHECK (winners > 0),
    committed_at INTEGER NOT NULL,
    closed_at    INTEGER NOT NULL,
    entries      INTEGER NOT NULL CHECK (entries >= 0),
    list_hash    TEXT    NOT NULL,
    public_value TEXT    NOT NULL,
    cutoff       TEXT    NOT NULL,
    drawn_at     INTEGER NOT NULL,
    version      INTEGER NOT NULL
) STRICT;
CREATE TABLE lottery_entries (
    campaign INTEGER NOT NULL REFERENCES lotteries (campaign),
    user_id  TEXT    NOT NULL,
    entry    TEXT    NOT NULL,
    nonce    TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (campaign, user_id),
    UNIQUE (campaign, entry)
) STRICT, WITHOUT ROWID;
CREATE TABLE rooms (
    campaign       INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    tail           INTEGER NOT NULL,
    early          INTEGER NOT NULL,
    seed           TEXT    NOT NULL,
    admitted_micro INTEGER NOT NULL,
    at             INTEGER NOT NULL
) STRICT;
CREATE TABLE room_places (
    campaign INTEGER NOT NULL REFERENCES rooms (campaign),
    number   INTEGER NOT NULL CHECK (number > 0),
    user_id  TEXT    NOT NULL,
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE audiences (
    id         TEXT    NOT NULL PRIMARY KEY,
    version    INTEGER NOT NULL,
    users      INTEGER NOT NULL CHECK (users >= 0),
    seed       BLOB    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE audience_parts (
    id      TEXT    NOT NULL,
    version INTEGER NOT NULL,
    part    INTEGER NOT NULL,
    users   BLOB    NOT NULL,
    PRIMARY KEY (id, version, part)
) STRICT;
CREATE TABLE merchants (
    id        TEXT    NOT NULL PRIMARY KEY,
    seq       INTEGER NOT NULL,
    followers INTEGER NOT NULL CHECK (followers >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE followers (
    merchant TEXT    NOT NULL REFERENCES merchants (id),
    user_id  TEXT    NOT NULL,
    follows  INTEGER NOT NULL CHECK (follows IN (0, 1)),
    standing INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (merchant, user_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE audit (
    id          TEXT    NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    actor_name  TEXT    NOT NULL,
    role        TEXT    NOT NULL,
    address     TEXT    NOT NULL,
    request_id  TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    status      INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    before_json TEXT    NOT NULL,
    after_json  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO audit VALUES('a-01a20598aa12-JE3TINWZFZ2S',1795390220818,'k-Q2H5OYDC2TXH','serve','admin','127.0.0.1','7IX7ARJSPD7SL-2','create-product','/v1/products',201,'','','{"id":"phone","name":"Phone","thumbnail":"","price":{"amount":99900,"currency":"CNY"},"description":"","stock":0,"stock_left":0,"late_payment":"reclaim","created_at":"2026-11-22T23:30:20.818Z","updated_at":"2026-11-22T23:30:20.818Z"}');
INSERT INTO audit VALUES('a-01a20598aa96-RCS7OMBHA7FY',1795390220950,'k-Q2H5OYDC2TXH','serve','admin','127.0.0.1','7IX7ARJSPD7SL-3','create-campaign','/v1/campaigns',201,'','','{"id":"phones","kind":"sale","title":"Phones","product_id":"phone","product":{"id":"phone","name":"Phone","thumbnail":"","price":{"amount":99900,"currency":"CNY"},"description":"","stock":0,"stock_left":0,"late_payment":"reclaim","created_at":"2026-11-22T23:30:20.818Z","updated_at":"2026-11-22T23:30:20.818Z"},"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"draft","limit_per_user":1,"price":null,"pay_within":null,"remaining":10,"version":1,"comment":"","stock":{"units":10},"late_payment":"reclaim","shards":1,"created_at":"2026-11-22T23:30:20.95Z","updated_at":"2026-11-22T23:30:20.95Z"}');
INSERT INTO audit VALUES('a-01a20598aa9a-AZGYTA3PQ3TZ',1795390220954,'k-Q2H5OYDC2TXH','serve','admin','127.0.0.1','7IX7ARJSPD7SL-4','publish-campaign','/v1/campaigns/phones/publish',200,'','{"id":"phones","kind":"sale","title":"Phones","product_id":"phone","product":{"id":"phone","name":"Phone","thumbnail":"","price":{"amount":99900,"currency":"CNY"},"description":"","stock":0,"stock_left":0,"late_payment":"reclaim","created_at":"2026-11-22T23:30:20.818Z","updated_at":"2026-11-22T23:30:20.818Z"},"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"draft","limit_per_user":1,"price":null,"pay_within":null,"remaining":10,"version":1,"comment":"","stock":{"units":10},"late_payment":"reclaim","shards":1,"created_at":"2026-11-22T23:30:20.95Z","updated_at":"2026-11-22T23:30:20.95Z"}','{"id":"phones","kind":"sale","title":"Phones","product_id":"phone","product":{"id":"phone","name":"Phone","thumbnail":"","price":{"amount":99900,"currency":"CNY"},"description":"","stock":0,"stock_left":0,"late_payment":"reclaim","created_at":"2026-11-22T23:30:20.818Z","updated_at":"2026-11-22T23:30:20.818Z"},"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"published","limit_per_user":1,"price":{"amount":99900,"currency":"CNY"},"pay_within":null,"remaining":10,"version":2,"comment":"","stock":{"units":10},"late_payment":"reclaim","shards":1,"created_at":"2026-11-22T23:30:20.95Z","updated_at":"2026-11-22T23:30:20.954Z"}');
INSERT INTO audit VALUES('a-01a20598ab26-4T3P6ZHNQBN7',1795390221094,'k-Q2H5OYDC2TXH','serve','admin','127.0.0.1','7IX7ARJSPD7SL-5','create-campaign','/v1/campaigns',201,'','','{"id":"spring","kind":"coupon","title":"Spring","product_id":null,"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"draft","limit_per_user":1,"price":null,"pay_within":null,"remaining":0,"version":1,"comment":"","stock":{"items_count":0},"late_payment":"reclaim","shards":1,"created_at":"2026-11-22T23:30:21.094Z","updated_at":"2026-11-22T23:30:21.094Z"}');
INSERT INTO audit VALUES('a-01a20598ac58-2Y6HH5VMVTJ5',1795390221400,'k-Q2H5OYDC2TXH','serve','admin','127.0.0.1','7IX7ARJSPD7SL-6','import-codes','/v1/campaigns/spring/codes',200,'','{"id":"spring","kind":"coupon","title":"Spring","product_id":null,"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"draft","limit_per_user":1,"price":null,"pay_within":null,"remaining":0,"version":1,"comment":"","stock":{"items_count":0},"late_payment":"reclaim","shards":1,"created_at":"2026-11-22T23:30:21.094Z","updated_at":"2026-11-22T23:30:21.094Z"}','{"campaign_id":"spring","imported":8,"stock":8}');
INSERT INTO audit VALUES('a-01a20598ac7a-5GEADOJOF5DJ',1795390221434,'k-Q2H5OYDC2TXH','serve','admin','127.0.0.1','7IX7ARJSPD7SL-7','publish-campaign','/v1/campaigns/spring/publish',200,'','{"id":"spring","kind":"coupon","title":"Spring","product_id":null,"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"draft","limit_per_user":1,"price":null,"pay_within":null,"remaining":8,"version":1,"comment":"","stock":{"items_count":8},"late_payment":"reclaim","shards":1,"created_at":"2026-11-22T23:30:21.094Z","updated_at":"2026-11-22T23:30:21.094Z"}','{"id":"spring","kind":"coupon","title":"Spring","product_id":null,"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"published","limit_per_user":1,"price":null,"pay_within":null,"remaining":8,"version":2,"comment":"","stock":{"items_count":8},"late_payment":"reclaim","shards":1,"created_at":"2026-11-22T23:30:21.094Z","updated_at":"2026-11-22T23:30:21.434Z"}');
INSERT INTO audit VALUES('a-01a20598acbb-SQSHLCR7NMVH',1795390221499,'k-Q2H5OYDC2TXH','serve','admin','127.0.0.1','7IX7ARJSPD7SL-8','create-campaign','/v1/campaigns',201,'','','{"id":"rain","kind":"redpacket","title":"Rain","product_id":null,"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"draft","limit_per_user":1,"price":null,"pay_within":null,"redpacket":{"total":{"amount":10000,"currency":"CNY"},"count":6},"remaining":6,"version":1,"comment":"","stock":{"redpacket":{"total":{"amount":10000,"currency":"CNY"},"count":6,"split":"double_mean","min":1}},"late_payment":"reclaim","shards":1,"funds":{"funded":{"amount":0,"currency":"CNY"},"credited":{"amount":0,"currency":"CNY"},"returned":{"amount":0,"currency":"CNY"},"escrow":{"amount":0,"currency":"CNY"},"returned_at":null},"created_at":"2026-11-22T23:30:21.499Z","updated_at":"2026-11-22T23:30:21.499Z"}');
INSERT INTO audit VALUES('a-01a20598acbc-SXZAAHSSHOR7',1795390221500,'k-Q2H5OYDC2TXH','serve','admin','127.0.0.1','7IX7ARJSPD7SL-9','publish-campaign','/v1/campaigns/rain/publish',200,'','{"id":"rain","kind":"redpacket","title":"Rain","product_id":null,"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"draft","limit_per_user":1,"price":null,"pay_within":null,"redpacket":{"total":{"amount":10000,"currency":"CNY"},"count":6},"remaining":6,"version":1,"comment":"","stock":{"redpacket":{"total":{"amount":10000,"currency":"CNY"},"count":6,"split":"double_mean","min":1}},"late_payment":"reclaim","shards":1,"funds":{"funded":{"amount":0,"currency":"CNY"},"credited":{"amount":0,"currency":"CNY"},"returned":{"amount":0,"currency":"CNY"},"escrow":{"amount":0,"currency":"CNY"},"returned_at":null},"created_at":"2026-11-22T23:30:21.499Z","updated_at":"2026-11-22T23:30:21.499Z"}','{"id":"rain","kind":"redpacket","title":"Rain","product_id":null,"starts_at":"2026-01-01T00:00:00Z","ends_at":"2036-01-01T00:00:00Z","state":"published","limit_per_user":1,"price":null,"pay_within":null,"redpacket":{"total":{"amount":10000,"currency":"CNY"},"count":6},"remaining":6,"version":2,"comment":"","stock":{"redpacket":{"total":{"amount":10000,"currency":"CNY"},"count":6,"split":"double_mean","min":1}},"late_payment":"reclaim","shards":1,"funds":{"funded":{"amount":10000,"currency":"CNY"},"credited":{"amount":0,"currency":"CNY"},"returned":{"amount":0,"currency":"CNY"},"escrow":{"amount":10000,"currency":"CNY"},"returned_at":null},"created_at":"2026-11-22T23:30:21.499Z","updated_at":"2026-11-22T23:30:21.5Z"}');
CREATE TABLE announcements (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    campaign    INTEGER NOT NULL REFERENCES campaigns (number),
    active      INTEGER UNIQUE,
    campaign_id TEXT    NOT NULL,
    merchant    TEXT    NOT NULL REFERENCES merchants (id),
    message     TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
    why         TEXT    NOT NULL,
    threshold   INTEGER NOT NULL CHECK (threshold >= 0),
    first_most  INTEGER NOT NULL CHECK (first_most >= 0),
    rate        INTEGER NOT NULL CHECK (rate > 0),
    followers   INTEGER NOT NULL CHECK (followers >= 0),
    up_to       INTEGER NOT NULL,
    enqueued    INTEGER NOT NULL CHECK (enqueued >= 0 AND enqueued <= followers),
    events      INTEGER NOT NULL,
    first_to    INTEGER NOT NULL,
    first_done  INTEGER NOT NULL CHECK (first_done IN (0, 1)),
    rest_to     INTEGER NOT NULL,
    paced_at    INTEGER NOT NULL,
    owner       TEXT    NOT NULL,
    lease_until INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL
) STRICT;
CREATE TABLE announcement_firsts (
    announcement INTEGER NOT NULL REFERENCES announcements (number),
    seq          INTEGER NOT NULL,
    PRIMARY KEY (announcement, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE announcement_rows (
    feed_row     INTEGER NOT NULL PRIMARY KEY,
    announcement INTEGER NOT NULL REFERENCES announcements (number),
    recipients   INTEGER NOT NULL
) STRICT;
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
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('goose_db_version',13);
INSERT INTO sqlite_sequence VALUES('campaigns',3);
CREATE INDEX campaigns_by_state ON campaigns (state);
CREATE INDEX claims_by_user ON claims (user_id, created_at);
CREATE INDEX items_by_claim ON items (campaign, shard, claim_epoch, claim_seq) WHERE claim_epoch IS NOT NULL;
CREATE TRIGGER items_one_claim BEFORE UPDATE OF claim_epoch, claim_seq ON items
WHEN OLD.claim_epoch IS NOT NULL AND NEW.claim_epoch IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'the item belongs to another claim');
END;
CREATE INDEX requests_by_age ON requests (at);
CREATE INDEX claims_due ON claims (pay_by) WHERE status = 0 AND pay_by > 0;
CREATE TRIGGER claim_events_last BEFORE DELETE ON claim_events
BEGIN
    SELECT RAISE(ABORT, 'an event is never deleted');
END;
CREATE INDEX claims_by_time ON claims (created_at);
CREATE INDEX payments_by_ref ON payments (ref);
CREATE INDEX campaigns_by_product ON campaigns (product_id);
CREATE INDEX packets_open ON packets (returned_at, funded_at);
CREATE INDEX entries_by_owner ON entries (owner, at) WHERE kind = 'user';
CREATE TRIGGER entries_last BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ABORT, 'an entry is never deleted');
END;
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (endpoint, status, id);
CREATE INDEX webhook_deliveries_by_subject ON webhook_deliveries (endpoint, subject, id);
CREATE UNIQUE INDEX followers_by_seq ON followers (merchant, seq);
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_target ON audit (target, id);
CREATE INDEX audit_by_actor ON audit (actor, id);
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (status, updated_at);
CREATE INDEX followers_by_rank ON followers (merchant, follows, standing DESC, seq);
CREATE INDEX announcements_by_campaign ON announcements (campaign, number);
CREATE INDEX announcements_by_state ON announcements (state, number);
CREATE INDEX announcement_rows_by_announcement ON announcement_rows (announcement, feed_row);
CREATE INDEX erasures_by_time ON erasures (requested_at, id);
CREATE TRIGGER claim_events_stay BEFORE UPDATE ON claim_events
WHEN NOT (OLD.step = 'ship' AND NEW.facts = x'' AND NEW.campaign = OLD.campaign AND NEW.shard = OLD.shard AND NEW.epoch = OLD.epoch
    AND NEW.seq = OLD.seq AND NEW.n = OLD.n AND NEW.step = OLD.step AND NEW.status = OLD.status AND NEW.at = OLD.at)
BEGIN
    SELECT RAISE(ABORT, 'an event never changes, but that it forgets where goods went');
END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
WHEN NOT (OLD.kind = 'user' AND NEW.owner LIKE 'erased-%' AND NEW.campaign = OLD.campaign AND NEW.shard = OLD.shard AND NEW.epoch = OLD.epoch
    AND NEW.seq = OLD.seq AND NEW.what = OLD.what AND NEW.ref = OLD.ref AND NEW.side = OLD.side AND NEW.kind = OLD.kind
    AND NEW.currency = OLD.currency AND NEW.amount = OLD.amount AND NEW.at = OLD.at)
BEGIN
    SELECT RAISE(ABORT, 'an entry never changes, but that its owner is erased');
END;
COMMIT;

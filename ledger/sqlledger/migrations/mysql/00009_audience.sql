-- Who may claim, and who did what; migrations/sqlite says what the tables are for.

-- +goose Up
CREATE TABLE IF NOT EXISTS audiences (
    id         VARCHAR(64)   NOT NULL PRIMARY KEY,
    version    BIGINT        NOT NULL,
    users      BIGINT        NOT NULL CHECK (users >= 0),
    seed       VARBINARY(64) NOT NULL,
    updated_at BIGINT        NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS audience_parts (
    id      VARCHAR(64) NOT NULL,
    version BIGINT      NOT NULL,
    part    INTEGER     NOT NULL,
    users   MEDIUMBLOB  NOT NULL,
    PRIMARY KEY (id, version, part)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS merchants (
    id        VARCHAR(64) NOT NULL PRIMARY KEY,
    seq       BIGINT      NOT NULL,
    followers BIGINT      NOT NULL CHECK (followers >= 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS followers (
    merchant VARCHAR(64) NOT NULL,
    user_id  VARCHAR(64) NOT NULL,
    follows  SMALLINT    NOT NULL CHECK (follows IN (0, 1)),
    standing BIGINT      NOT NULL,
    since    BIGINT      NOT NULL,
    seq      BIGINT      NOT NULL,
    PRIMARY KEY (merchant, user_id),
    UNIQUE KEY followers_by_seq (merchant, seq),
    KEY followers_by_standing (merchant, follows, standing, user_id),
    FOREIGN KEY (merchant) REFERENCES merchants (id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS audit (
    id          VARCHAR(64)   NOT NULL PRIMARY KEY,
    at          BIGINT        NOT NULL,
    actor       VARCHAR(191)  NOT NULL,
    actor_name  VARCHAR(1000) NOT NULL,
    role        VARCHAR(16)   NOT NULL,
    address     VARCHAR(64)   NOT NULL,
    request_id  VARCHAR(255)  NOT NULL,
    action      VARCHAR(64)   NOT NULL,
    target      VARCHAR(512)  NOT NULL,
    status      INTEGER       NOT NULL,
    reason      VARCHAR(64)   NOT NULL,
    before_json MEDIUMTEXT    NOT NULL,
    after_json  MEDIUMTEXT    NOT NULL,
    KEY audit_by_time (at),
    KEY audit_by_target (target, id),
    KEY audit_by_actor (actor, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS audit;
DROP TABLE IF EXISTS followers;
DROP TABLE IF EXISTS merchants;
DROP TABLE IF EXISTS audience_parts;
DROP TABLE IF EXISTS audiences;

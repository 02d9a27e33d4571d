-- People whom an identity provider has identified, and whose command line has not come for its key yet.

-- +goose Up
-- hash is the SHA-256 of the code that the command line brings; challenge is what it has to prove itself by.
-- person, name and role are as in api_keys. A row is deleted when its code is used.
CREATE TABLE pending_sign_ins (
    hash       BLOB    NOT NULL PRIMARY KEY,
    person     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    challenge  TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE pending_sign_ins;

-- Agents whose gateways register them under new ids after a restart. Parlor gateways name their version; connections of
-- the Ably protocol name no runtime.
ALTER TABLE agents ADD COLUMN has_lasting_id INTEGER NOT NULL DEFAULT 1;
UPDATE agents SET has_lasting_id = 0
WHERE gateway IN (SELECT id FROM gateways WHERE runtime <> '' AND runtime NOT LIKE 'parlor %');

-- Names of members in their rooms. The SQL function `name_key` is `mention::name_key` of the model.
ALTER TABLE members ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE members ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
UPDATE members SET name = coalesce(
    CASE kind
        WHEN 0 THEN (SELECT display_name FROM users WHERE id = members.member)
        ELSE (SELECT name FROM agents WHERE id = members.member)
    END,
    ''
);
UPDATE members SET name_key = name_key(name);
CREATE INDEX members_named ON members (room, name_key);

-- A member whose name an earlier member has gets the username of its account as a suffix, then its place.
UPDATE members SET name = name || '-' || coalesce(
    CASE kind
        WHEN 0 THEN (SELECT username FROM users WHERE id = members.member)
        ELSE (SELECT username FROM agents JOIN users ON users.id = agents.owner WHERE agents.id = members.member)
    END,
    member
)
WHERE EXISTS (
    SELECT 1 FROM members AS earlier
    WHERE earlier.room = members.room AND earlier.name_key = members.name_key AND earlier.place < members.place
);
UPDATE members SET name_key = name_key(name) WHERE name_key <> name_key(name);
UPDATE members SET name = name || '-' || place
WHERE EXISTS (
    SELECT 1 FROM members AS earlier
    WHERE earlier.room = members.room AND earlier.name_key = members.name_key AND earlier.place < members.place
);
UPDATE members SET name_key = name_key(name) WHERE name_key <> name_key(name);

ALTER TABLE rooms ADD COLUMN description TEXT;

-- Agents that were removed while their gateway was away.
ALTER TABLE gateways ADD COLUMN dismissed TEXT NOT NULL DEFAULT '[]';

-- runs beside earlier versions
-- The development environment that an unconfigured first start makes by itself is for the machine it runs on: its
-- unsigned tokens and the demo are refused to everybody else (DECISIONS, Tenancy).
ALTER TABLE environments ADD COLUMN local boolean NOT NULL DEFAULT false;

-- Earlier first starts left no mark. What they made has an id that was not chosen, and came in one transaction with
-- the first organization. One that was listed with an id of this form is marked as well, which is the safe side: the
-- operator opens it with `env set <env id> --local false`.
UPDATE environments SET local = true
WHERE kind = 'development' AND id ~ '^env_[0-9a-z]{26}$'
  AND created_at = (SELECT created_at FROM organizations ORDER BY no LIMIT 1);

-- The role and the database of Parley on a PostgreSQL of your own (15 or newer). As a superuser:
--   psql -v password="$(cat password)" -v backup_password="$(cat backup-password)" -f deploy/postgresql/roles.sql

-- Owner of its database and of nothing else. The limit is what the processes open (docs/operations/deployment.md) and a few more.
CREATE ROLE parley LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 200 PASSWORD :'password';
-- Sorting by code point: quicker, and the same after an upgrade of the system's libraries.
CREATE DATABASE parley OWNER parley TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8';
REVOKE ALL ON DATABASE parley FROM PUBLIC;

-- Base backups and WAL (docs/operations/backup.md); it cannot log in to a database.
CREATE ROLE parley_backup LOGIN REPLICATION PASSWORD :'backup_password';

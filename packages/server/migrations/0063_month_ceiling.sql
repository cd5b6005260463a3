-- A send or a read no longer holds the month while it is committed (src/features/analytics/sql/active_users.sql).
DROP FUNCTION IF EXISTS month_admits(int, bigint, bigint);
DROP FUNCTION IF EXISTS month_room(int, bigint[]);
DROP FUNCTION IF EXISTS count_in_month(int, bigint);
DROP FUNCTION IF EXISTS count_all_in_month(int, bigint[]);

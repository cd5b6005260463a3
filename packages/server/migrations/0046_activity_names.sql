-- Says in the names what the columns hold: the time of the last activity in steps of 10 s. The functions that use them
-- are applied again after the migrations.
ALTER TABLE conversations RENAME COLUMN act TO last_activity_step;
ALTER TABLE members RENAME COLUMN act TO last_activity_step;
ALTER TABLE members RENAME COLUMN self_act TO own_activity_step;
ALTER TABLE members RENAME COLUMN self_at TO own_activity_at;

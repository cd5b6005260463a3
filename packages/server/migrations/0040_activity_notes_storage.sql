-- Notes live for seconds: compressing them costs the group commit more than all the rest of the note. They stay in the row as they are,
-- up to what fits into a page.
ALTER TABLE activity_notes SET (toast_tuple_target = 8160);
ALTER TABLE activity_notes
  ALTER COLUMN c_env SET STORAGE EXTERNAL,
  ALTER COLUMN c_no SET STORAGE EXTERNAL,
  ALTER COLUMN place SET STORAGE EXTERNAL,
  ALTER COLUMN usr SET STORAGE EXTERNAL,
  ALTER COLUMN kind SET STORAGE EXTERNAL,
  ALTER COLUMN refused SET STORAGE EXTERNAL;

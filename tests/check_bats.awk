# What bats cannot do, or does in silence: awk -f tests/check_bats.awk tests/*.bats
# In setup_file it cannot skip: the file fails. A test that needs files of TEST_DATA without the tag data is not run by make check-slow.
FNR == 1 { where = ""; tags = "" }
/^# bats test_tags=/ { tags = $0 }
/^(@test|setup_file\(\)|setup\(\))/ { where = $1; tagged = tags ~ /[=,]data/; tags = "" }
where == "setup_file()" && /(^|[;&|{][ \t]*|[ \t])(skip|skip_if|need|need_pty) / { wrong($0 " in setup_file: bats can skip in setup and in tests") }
where == "@test" && /^[ \t]*need / && !tagged { wrong("a test that needs files has the line # bats test_tags=data before it") }
/^}/ { where = "" }
/^setup_file\(\) .*}$/ { where = "" }
function wrong(what) { print FILENAME ":" FNR ": " what; bad = 1 }
END { exit bad }

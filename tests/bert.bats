# The two outside readings of the network that the trainer is held to must agree with each other.
load helper

@test "the numpy reference gives transformers' hidden states, logits, losses and gradients" {
	run "$PYTHON" "$BATS_TEST_DIRNAME/ref/bert.py" "$BATS_TEST_DIRNAME/golden/v1/bert.bin"
	assert_success
	assert_line --partial "mlm: within"
}

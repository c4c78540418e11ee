"""The studies: what each part of the method does, as short declarations over the evaluation."""

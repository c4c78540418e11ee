"""Taking off a label's score what the model would give it for any text. No labelled example is used."""

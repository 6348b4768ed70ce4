"""What keys of a framework mean: from settings to quantities and back."""

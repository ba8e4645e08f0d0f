"""What people say about labels: reviewed samples, disputed verdicts, and what to verify next."""

return Temporal.Now.instant();

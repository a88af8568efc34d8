"""What a run says, asked for over HTTP: `service` without HTTP, `app` its routes, `server` the process."""

package receiver

// Messages shown to users in conditions.
const (
	msgCalendarServed = "The calendar is served at the path in status.calendarPath"
	msgWebhooksServed = "Webhooks are accepted at the path in status.webhookPath"
)

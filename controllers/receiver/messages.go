package receiver

// Messages shown to users in conditions.
const (
	msgCalendarServed = "The calendar is at the path of status.calendarPath"
	msgWebhooksServed = "Webhooks are taken at the path of status.webhookPath"
)

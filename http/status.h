/* Reason phrases of status codes. */
#ifndef HTTP_STATUS_H
#define HTTP_STATUS_H

/* The reason phrase (RFC 9110, section 15); "Unknown" for other statuses. */
const char *http_status_text(unsigned status);

#endif

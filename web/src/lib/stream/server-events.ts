export interface ServerEvent {
  event: string
  data: string
}

/**
 * Takes the text of a stream of server-sent events (HTML standard, section 9.2) in pieces and reports each event when it
 * is complete. It serves requests with a body, which `EventSource` cannot send.
 */
export function eventReader(onEvent: (event: ServerEvent) => void): (text: string) => void {
  let rest = ''
  let event = ''
  let data: string[] = []

  const take = (line: string) => {
    if (line === '') {
      if (data.length > 0) onEvent({ event, data: data.join('\n') })
      event = ''
      data = []
      return
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
    if (field === 'event') event = value ?? ''
    if (field === 'data') data.push(value ?? '')
  }

  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?=[^\n])/)
    rest = lines.pop() ?? ''
    lines.forEach(take)
  }
}

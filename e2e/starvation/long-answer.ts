/** Returns the raw request for a long answer, which the engine generates as fast as it can. */
export function longAnswerRequest(apiKey: string): string {
  const body = JSON.stringify({
    ...{ model: "sim", stream: true, max_tokens: 30_000 },
    messages: [{ role: "user", content: "sim:tokens=30000,itl=0 go on" }],
  });
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer ${apiKey}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

import { withRetry } from "./retry";

/** An answer of the service that is not a success. */
export class ServiceError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Talks to one dock service. */
export class HttpClient {
  private readonly base: string;

  constructor(base: string) {
    this.base = base.replace(/\/+$/, "");
  }

  get<T>(path: string): Promise<T> {
    return withRetry(() => this.send<T>("GET", path));
  }

  post<T>(path: string, body: unknown = {}): Promise<T> {
    return this.send<T>("POST", path, body);
  }

  delete<T>(path: string): Promise<T> {
    return this.send<T>("DELETE", path);
  }

  private async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(this.base + path, {
      method,
      headers: { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const content = await response.json();
    if (!response.ok) {
      throw new ServiceError(response.status, describeFailure(content));
    }
    return content as T;
  }
}

function describeFailure(content: unknown): string {
  if (typeof content === "object" && content !== null && "error" in content) {
    return String((content as { error: unknown }).error);
  }
  return "the service gave no reason";
}
